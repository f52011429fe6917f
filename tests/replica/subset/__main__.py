"""Write what becomes of each entry's query now; look at the difference before you commit."""

from tests.replica.subset import entries

entries.write([entry.now() for entry in entries.read()])
