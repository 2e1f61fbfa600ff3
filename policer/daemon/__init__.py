"""The process: store, service, REST and page, started, bound and watched."""
