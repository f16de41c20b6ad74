/* Expat's configuration comes from programs.toml. */
