"""Bytes that a driver uses: clients' files looked at and mapped, folders that are believed."""
