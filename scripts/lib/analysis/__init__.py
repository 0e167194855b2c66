"""Why a configuration is as fast as it is."""
