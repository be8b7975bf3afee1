"""The figures of the pages, one class each: its options, the numbers behind it, the picture, its tables and its checks.

    from transformer import load
    from transformer.views.masks import TeacherForcing
    lab = load("reverse")
    view, seen = TeacherForcing(), lab.inspect("a b c")
    view.figure(view.data(lab, seen)).show()

There is no list of them: a class that satisfies `transformer.views.view.View` is a view.
"""
