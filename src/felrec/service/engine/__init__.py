"""The engine: ingests events, makes them durable, answers from memory."""
