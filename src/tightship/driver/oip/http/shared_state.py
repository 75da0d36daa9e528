"""State common to the HTTP connections of a server."""

from dataclasses import dataclass, field

from tightship.driver.oip.hang_ups import HangUps
from tightship.driver.oip.http.application import HttpApplication
from tightship.driver.oip.http.places import Places
from tightship.driver.oip.limits import EndpointLimits


@dataclass(slots=True, eq=False)
class Shared:
    """State common to the connections of a server.

    Attributes:
        hang_ups: Watches clients that wait for such a reply.
    """

    app: HttpApplication
    limits: EndpointLimits
    places: Places
    hang_ups: HangUps = field(default_factory=HangUps)
