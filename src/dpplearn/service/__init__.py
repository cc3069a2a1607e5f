"""Models over HTTP: the service, and the pages that show it. Needs the extra `serve`."""
