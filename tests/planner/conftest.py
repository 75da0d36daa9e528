from hypothesis import settings

settings.register_profile("planner", deadline=None)
settings.load_profile("planner")
