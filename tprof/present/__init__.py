"""Results as text, tables, Markdown and a self-contained HTML page. Formats what a `Result` holds; computes nothing."""
