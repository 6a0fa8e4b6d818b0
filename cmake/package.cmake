# `cpack` in a build folder makes a Debian package of what `cmake --install` gives, attnbench_VERSION_ARCHITECTURE.deb. Of preset
# native the package is for processors like this one; of preset release for all of the architecture.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME attnbench)
set(CPACK_PACKAGE_CONTACT "The attnbench authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "benchmark of attention variants: speed, memory, accuracy and fidelity")
set(CPACK_SET_DESTDIR ON) # the prefix stays /usr while files are staged: cmake/install_texts.cmake reads it
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What draws and reports is in Python (python/attnbench/__main__.py names the libraries). The program alone measures without them.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-matplotlib, python3-numpy, python3-pandas, python3-scipy")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, python3-plotly") # a variant of one's own; reports
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/cmake/debian/prerm")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
