"""Templates (text patterns with placeholders) that tests share.

There are payloads like those of real topics, and one template with every kind of placeholder.
"""

from collections.abc import Iterator

import numpy as np

from kfbench.arrays import Int32, Int64
from kfbench.workloads.payload.template import Template

EVENT = (
    '{"id":"<8x>","time":"<time iso>","type":"<page_view|item_list|add_to_cart|check_out|signed_in|searching>",'
    '"user":"u-<$user key:6d>","city":"<$ key:Berlin|New York|Paris|London>","path":"/<products|accounts|sessions>/'
    '<$ of 120:4d>","duration_ms":<int 3..900 low>,"session":"<$ every 8 of 5000:6w>","note":"<$ of 90:text>"}'
)
LOG_LINE = (
    "<time iso> <INFO |INFO |INFO |DEBUG|WARN |ERROR> [<$task of 12:http-8080-exec-|scheduling-|consumer-><$task:2d>] "
    "c.e.shop.<$ of 20:orders.Orders|payments.Gateway|stock.Warehouse|web.Controller>: <$ of 24:text>; order <5d> "
    "took <int 1..2000 low> ms"
)
ACCESS_LINE = (
    "<$client of 400:int 1..223>.<$client:int 0..255>.<$client:int 2..254>.<$client:int 1..254> - - [<time clf>] "
    '"<GET|GET|POST> /<index.html|images/logo.png|css/site.css|api/items/|search?q=><$ of 300:4x> HTTP/1.1" '
    '<200|304|404|301|500> <int 200..60000 low> "<-|https://www.example.com/index.html|https://search.example.org/>" '
    '"Mozilla/5.0 ('
    "<$client:Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36|"
    "iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Safari/604.1|"
    "X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0|"
    'compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)>"'
)
DEBEZIUM = (
    '{"before":null,"after":{"id":<$id key:int 1001..99999>,"first_name":"<$ key:Anne|Edward|George|Sally|Maria>",'
    '"last_name":"<$ key:Kretchmar|Walker|Bailey|Thomas|Garcia>","email":"<$ key:6a>@<$ key:noanswer.org|acme.com>"},'
    '"source":{"version":"2.1.4.Final","connector":"mysql","name":"dbserver1","ts_ms":<time ms -900>,"snapshot":"false"'
    ',"db":"inventory","sequence":null,"table":"customers","server_id":223344,"gtid":null,"file":"mysql-bin.000003",'
    '"pos":<count 10000 step 300>,"row":0,"thread":<$ of 8:int 7..99>,"query":null},"op":"<c|u>","ts_ms":<time ms>,'
    '"transaction":null}'
)
TRACEPARENT = "00-<$trace every 6:32x>-<16x>-<01|00>"
EVERY_SLOT = (
    "<3d>/<2x>/<4a>/<2A>/<5w>/<7b>/<1raw>/<9raw>/<3zeros>/<uuid>/<id 1>/<id 9>/<$n every 4 of 10:uuid>/<$n>/"
    "<|one|three and thirty characters, and some more>/<$ even:a|b|c>/<text 0..70>/<$ of 3:text 5..5>/"
    "<int -5..5>/<int 0..4611686018427387903>/<int 7..99 low>/<int -40..60 drift>/<$ key:int 0..999 drift>/"
    "<count 999998>/<$ key:count 5>/<$ every 3:count 7 step 90>/"
    "<time iso>/<time clf>/<time s>/<time ms -50>/<<end>"
)
EXAMPLES = {
    "event": EVENT,
    "log line": LOG_LINE,
    "access line": ACCESS_LINE,
    "debezium": DEBEZIUM,
    "traceparent": TRACEPARENT,
    "every slot": EVERY_SLOT,
    "elastic": "<text>,<raw><zeros><A>" + EVERY_SLOT + "<d>",
    "letters": "<A>",
    "constant": "application/json",
}


def cases() -> Iterator[tuple[str, Template, Int64, Int32 | None, Int64]]:
    """Yield test cases of templates: label, template, record numbers, lengths and keys.

    A length may be shorter or longer than the record, fit it, or be null.
    """
    numbers = np.array([*range(12), 63, 64, 65, 65_535, 65_536, 2**31, 2**40, 2**62, 0])
    keys = numbers // 2 % 7
    for name, text in EXAMPLES.items():
        template = Template.parse(text)
        yield f"{name}, natural", template, numbers, None, keys
        least = template.least_bytes
        lengths = np.resize([-1, 0, 1, least // 2, least - 1, least], len(numbers)).astype(np.int32)
        yield f"{name}, cut", template, numbers, lengths, keys
        if template.elastic:
            more = np.resize([0, 1, 7, 8, 31, 32, 33, 100, 1000], len(numbers)).astype(np.int32)
            yield f"{name}, elastic", template, numbers, template.most_bytes + more, keys
