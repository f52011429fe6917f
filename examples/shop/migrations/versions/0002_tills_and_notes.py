"""Tills, notes on orders, and an index to find orders that are open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add them."""
    op.create_table(
        "till",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("taken", sa.Numeric(12, 2), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_till"),
    )
    op.add_column("customer_order", sa.Column("note", sa.String(200)))
    op.create_index("ix_customer_order_status", "customer_order", ["status"])


def downgrade() -> None:
    """Take them away."""
    op.drop_index("ix_customer_order_status", table_name="customer_order")
    op.drop_column("customer_order", "note")
    op.drop_table("till")
