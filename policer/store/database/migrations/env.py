"""Runs the steps on the connection of `policer.store.database.schema`, in its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
