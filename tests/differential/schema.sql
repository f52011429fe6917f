CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(10,2), kind TEXT, added DATE, weight DOUBLE PRECISION, active BOOLEAN);

CREATE TABLE sale (sold DATE, item INTEGER, quantity INTEGER NOT NULL <check>, note TEXT, PRIMARY KEY (sold, item));

CREATE TABLE node (id BIGINT PRIMARY KEY, parent BIGINT, label TEXT NOT NULL DEFAULT 'leaf');

CREATE TABLE code (code TEXT PRIMARY KEY, meaning TEXT UNIQUE, rank SMALLINT DEFAULT 7);

CREATE TABLE log (item INTEGER, text TEXT, moment TIMESTAMP);

CREATE TABLE thing (id INTEGER PRIMARY KEY, <own types>, ratio FLOAT, tag UUID);
