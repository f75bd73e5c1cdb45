"""One module per page; each has `page(recording, state)`."""
