"""One file for each version of the database; a file that was released is never changed again."""
