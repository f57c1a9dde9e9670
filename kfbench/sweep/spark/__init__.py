"""Everything that knows Spark. Recipes and results travel by pickle and Arrow."""
