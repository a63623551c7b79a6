"""Reports of casts as text, Markdown, HTML, JSON and SARIF."""
