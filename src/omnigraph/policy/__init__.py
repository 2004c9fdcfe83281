"""Who may do what: roles, Cedar policies, tokens. It decides; the engine asks and obeys."""
