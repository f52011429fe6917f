"""The first shop: customers, products, orders, payments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "customer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("email", sa.String(80), nullable=False),
        sa.Column("balance", sa.Numeric(12, 2), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_customer"),
        sa.UniqueConstraint("email", name="uq_customer_email"),
    )
    op.create_table(
        "product",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("sku", sa.String(20), nullable=False),
        sa.Column("price", sa.Numeric(12, 2), nullable=False),
        sa.Column("stock", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_product"),
        sa.UniqueConstraint("sku", name="uq_product_sku"),
    )
    op.create_table(
        "customer_order",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("customer_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("total", sa.Numeric(12, 2), nullable=False),
        sa.Column(
            "placed_at", sa.DateTime(), nullable=False, server_default=sa.func.now()
        ),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_customer_order"),
        sa.ForeignKeyConstraint(
            ["customer_id"],
            ["customer.id"],
            name="fk_customer_order_customer_id",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "line",
        sa.Column("order_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("product_id", sa.Integer(), nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("price", sa.Numeric(12, 2), nullable=False),
        sa.PrimaryKeyConstraint("order_id", "number", name="pk_line"),
        sa.ForeignKeyConstraint(
            ["order_id"],
            ["customer_order.id"],
            name="fk_line_order_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["product_id"], ["product.id"], name="fk_line_product_id"
        ),
    )
    op.create_table(
        "payment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("order_id", sa.Integer(), nullable=False),
        sa.Column("amount", sa.Numeric(12, 2), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_payment"),
        sa.ForeignKeyConstraint(
            ["order_id"],
            ["customer_order.id"],
            name="fk_payment_order_id",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("payment", "line", "customer_order", "product", "customer"):
        op.drop_table(table)
