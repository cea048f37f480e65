"""Speed, acceptance and utility of the library, measured against peers in the same run."""
