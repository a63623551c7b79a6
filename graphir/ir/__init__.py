"""The intermediate representation: graphs, symbols, operators, and their building and checking."""
