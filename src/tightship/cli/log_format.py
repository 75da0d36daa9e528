"""Log lines as JSON, one object a line."""

import json
import logging
from datetime import UTC, datetime

from tightship.driver.oip.refusal_log import FIELDS


class JsonLines(logging.Formatter):
    """Formats a record as an object with its time, level and text, and the fields it has."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, which is ASCII and has no line break within it."""
        made = datetime.fromtimestamp(record.created, UTC)
        said = {
            "time": made.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said)
