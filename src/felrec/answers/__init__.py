"""What the service answers: the types that engine, HTTP and client share. Imports nothing else of felrec."""
