"""The groups by which callers take turns, as `Place` has them.

Models come first, so that many calls of one delay those of another by one run at most; then the
accounts that call the same model, then the clients of an account.
"""

Names = tuple[str, str, str, str]


def named_model(model: str, account: str, client: str, number: int = 0) -> Names:
    """Groups of a call of a model that the driver was started with.

    Args:
        model: Its name.
        account: The user, or else the client's address.
        client: Tells clients of an account apart.
        number: Tells preparations of the model by the same client apart.
    """
    return model, account, client, str(number)


def own_model(account: str, client: str, number: int) -> Names:
    """Groups of a call of a model that a client has prepared: those of an account are as one.

    Else an account would have the more turns the more models it prepares.
    """
    return f"\0{account}", "", client, str(number)
