from django.db import models


class Owner(models.Model):
    name = models.CharField(max_length=60, unique=True)
    note = models.TextField(null=True)

    class Meta:
        app_label = "django_project"
        indexes = [models.Index(fields=["note"], name="owner_note")]


class Account(models.Model):
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="accounts")
    guarantor = models.ForeignKey(
        Owner, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    address = models.GenericIPAddressField(default="127.0.0.1")
    balance = models.DecimalField(max_digits=12, decimal_places=2, default=0)
    opened = models.DateTimeField(auto_now_add=True)
    extra = models.JSONField(default=dict)
    friends = models.ManyToManyField(Owner, related_name="+")

    class Meta:
        app_label = "django_project"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(balance__gte=0), name="balance_is_positive"
            )
        ]
