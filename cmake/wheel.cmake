# What `pip install .` installs (pyproject.toml): the program as the presets build it, and the extension, which links the same objects.
install(TARGETS attnbench RUNTIME DESTINATION attnbench/bin COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/results/schema.json DESTINATION attnbench)
install(TARGETS _core LIBRARY DESTINATION attnbench COMPONENT extension)
