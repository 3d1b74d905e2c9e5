-- Run once by the PostgreSQL image: the database that the flights example reads and writes, apart from the run store.
CREATE DATABASE warehouse;
