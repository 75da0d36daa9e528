"""Exit codes of each command."""

EXIT_CODES = {
    "plan": "0 fits, 1 does not fit `--max-memory` (with `--diff`: NEW takes more than OLD)",
    "place": "0 fits, 1 proved not to fit, 3 undecided within the budget",
    "cost": "0 done, 1 proved not to fit a limit, 3 no plan within `--squeeze` was found",
    "exec": "126 cannot be run, 127 not found, 128 + N ended by signal N, else the program's own",
    "run": "0 done, 1 does not fit `--max-memory` or the system, 3 ended by `--timeout`",
    "share": "0 done",
    "list": "0 done",
    "clear": "0 done",
    "verify": "0 valid, 1 not valid",
    "prepare": "0 done, 1 the system refuses memory",
    "view": "0 done",
    "replay": "0 done, 1 a resource refused a request",
    "serve": "0 ended by SIGINT or SIGTERM, 1 the system refuses memory",
    "pools": "0 done",
    "generate": "0 done, 1 does not fit `--max-memory` or the system",
    "chat": "0 done, 1 does not fit `--max-memory` or the system",
    "embed": "0 done, 1 does not fit `--max-memory` or the system",
    "sample": "0 done",
    "profile": "0 done, 1 the recommended division refused a request",
}
"""Exit codes of each command, without those that all commands have."""
