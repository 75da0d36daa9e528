"""Groups by which callers of the models alternate, in the order of `Place`.

Models come first, so that many calls of one delay those of another by one run at most; then the
accounts that call the same model, then the clients of an account. An account that waits for several
models takes turns with the models as if it were one of them.
"""

Names = tuple[str, str, str, str]


def named_model(model: str, account: str, client: str, number: int = 0) -> Names:
    """Return the groups of a call of a model that the driver was started with.

    Args:
        model: Name of the model.
        account: User, or the client's address.
        client: Distinguishes clients of an account.
        number: Distinguishes preparations of the model by one client.
    """
    return model, account, client, str(number)


def own_model(account: str, client: str, number: int) -> Names:
    """Return the groups of a call of a model that a client has prepared.

    All of an account's own models are one group, so that preparing more gains no more runs.
    """
    return f"\0{account}", account, client, str(number)
