"""One module a subcommand: ``add_parser(subparsers)`` and ``run(args) -> exit code``."""
