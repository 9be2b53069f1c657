"""How a run is spread over processes: a child that may die, ranks that share the cases."""
