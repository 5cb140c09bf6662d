"""Ingest events from streams: Redis Streams and Kafka. It only appends to a store, and needs no model."""
