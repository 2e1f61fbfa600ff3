"""The database: transactions on SQLite and PostgreSQL, tables, schema versions, errors."""
