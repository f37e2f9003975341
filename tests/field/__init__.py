"""Small models rebuilt from public reports of deployments that failed, each with what vexlint is to say of it."""
