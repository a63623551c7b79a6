"""Reading, cleaning and combining the data of a laboratory."""
