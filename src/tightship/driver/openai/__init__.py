"""OpenAI's API over language models: chats, completions, and the list of models."""
