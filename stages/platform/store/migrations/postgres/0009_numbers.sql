-- A sequence never gives a number twice: nothing is to be done, which SQLite's file of this number does.
SELECT 1;
