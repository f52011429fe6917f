"""CH-benCHmark: analytical queries over the tables of TPC-C."""
