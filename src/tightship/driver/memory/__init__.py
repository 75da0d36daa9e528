"""Access to clients' memory: files inspected, mapped and copied; trusted folders."""
