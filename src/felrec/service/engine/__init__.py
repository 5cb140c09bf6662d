"""The engine: ingests events, makes them durable and answers requests from memory."""
