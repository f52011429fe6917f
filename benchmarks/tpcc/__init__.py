"""TPC-C, revision 5.11: schema, population, transactions, consistency conditions."""
