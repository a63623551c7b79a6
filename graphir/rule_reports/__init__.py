"""Reports about a rule set: explanations, facts, laws, tables."""
