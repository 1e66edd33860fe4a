"""One download, keystrokes beside it, and a cut link: forwarded by each tool over the same emulated links."""
