/// The only file that asks the operating system for memory.
#pragma once
