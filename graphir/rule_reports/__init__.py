"""Questions asked of a rule set: explanations, facts, laws, tables."""
