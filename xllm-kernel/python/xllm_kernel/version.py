"""The version of the package and of its C++ library: the one place that holds it.

Read without an import by pyproject.toml and CMakeLists.txt, hence a plain string.
"""

__version__ = "0.1.0"
