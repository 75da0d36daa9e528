from tests.driver.nnapi.conftest import client, served

__all__ = ["client", "served"]
