"""The steps from an empty database to the newest version, run by Alembic."""
