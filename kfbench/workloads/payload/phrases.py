"""The phrases that fill `<text>` slots of payload templates."""

from typing import Final

# Phrases of services, shops and devices. Their choice and skew are assumptions, tuned so that texts compress like real
# topics. No phrase has a character that JSON escapes. Each has at most 31 bytes, or 32 with the space after it.
PHRASES: Final = (
    """
request completed in time|connection established|user session refreshed|cache entry expired for|retrying after timeout
order was accepted by|payment is being processed|failed to reach upstream|no route to host|read from replica
heartbeat received from node|waiting for more data|scheduled maintenance window|starting background task
partition leader was elected|offset committed for group|consumer joined the group|rebalance finished|schema registered
queue depth is above limit|message was delivered|delivery attempt number|stock level updated|price list was changed
the customer asked for|please contact support|new address was confirmed|item added to basket|shipment left the warehouse
returned to sender|invoice has been paid|subscription will renew|temperature within range|battery level is low
sensor reported a value|firmware update available|door opened at entrance|motion detected in hall|signal strength fell
login from a new device|password was changed|token has been revoked|access was denied|permission granted to role
file uploaded to bucket|image resized for preview|video stream started|download finished|checksum does not match
database query took longer|index rebuilt on table|transaction rolled back|lock wait was exceeded|vacuum ran on shard
memory usage is normal|garbage collection paused|thread pool is exhausted|disk space below threshold|cpu load returned
service registered with|health check passed|circuit breaker opened|fallback response was used|rate limit was reached
invalid argument in call|unexpected end of input|null value in column|duplicate key was ignored|deprecated field in use
search returned results|page viewed by visitor|button clicked on form|campaign mail was opened|coupon code applied at
driver assigned to trip|route was recalculated|arrival expected within|pickup point was moved|fare estimate changed
account balance updated|transfer was scheduled|card payment declined|refund issued to customer|exchange rate loaded
backup written to storage|snapshot restored from|replica is catching up|node removed from cluster|config reloaded by
job finished without errors|worker picked up task|step skipped by rule|result stored for later|deadline was extended
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
