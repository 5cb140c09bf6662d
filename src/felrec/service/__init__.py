"""The online service: events in, recommendations out."""
