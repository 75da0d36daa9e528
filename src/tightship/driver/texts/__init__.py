"""Texts of served language models: sessions, and answers that share them."""
