"""All schemes over sections of two recorded networks, beside the better link alone."""
