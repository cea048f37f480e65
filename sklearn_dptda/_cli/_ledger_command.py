"""``python -m sklearn_dptda ledger``: what a ledger has paid for, and what is left."""

from sklearn_dptda.privacy import PrivacyAccountant


def add_parser(subparsers, formatter):
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "ledger",
        help="print what a ledger has paid for, and what is left",
        description="Print the releases that a ledger has paid for, their loss together, and what "
        "is left. Nothing is spent. A ledger holds no records.",
        epilog="example:\n  python -m sklearn_dptda ledger budget.db",
        formatter_class=formatter,
    )
    parser.add_argument("ledger", metavar="PATH", help="file or SQLAlchemy URL of the ledger")
    parser.set_defaults(run=run)


def run(args):
    """Run the command."""
    accountant = PrivacyAccountant.open(args.ledger)
    for spend in accountant.spends():
        print(
            f"{spend.number}  {spend.time}  epsilon={spend.epsilon:g}, delta={spend.delta:g}"
            f"  {spend.estimator}"
        )
    total, left = accountant.total(), accountant.remaining()
    print(f"together: epsilon={total.epsilon:g}, delta={total.delta:g}", end=" ")
    print(f"by {accountant.composition} composition")
    print(f"left: epsilon={left.epsilon:g}, delta={left.delta:g}")
